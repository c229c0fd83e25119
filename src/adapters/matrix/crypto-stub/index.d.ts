export declare const StoreType: Record<string, number>;
export declare class OlmMachine {}
