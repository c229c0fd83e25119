/** Writes models in the format ONNX, as far as tests need it: protocol buffers by hand, without a package. */

type Values = Float32Array | BigInt64Array;
type Attribute = number | readonly number[] | { readonly float: number };

const varint = (value: number | bigint): Buffer => {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  do {
    bytes.push(Number(rest & 127n) | (rest > 127n ? 128 : 0));
    rest >>= 7n;
  } while (rest > 0n);
  return Buffer.from(bytes);
};
const int = (field: number, value: number | bigint): Buffer => Buffer.concat([varint(field << 3), varint(value)]);
const bytes = (field: number, ...parts: Buffer[]): Buffer => {
  const all = Buffer.concat(parts);
  return Buffer.concat([varint((field << 3) | 2), varint(all.length), all]);
};
const text = (field: number, value: string): Buffer => bytes(field, Buffer.from(value));
const float = (field: number, value: number): Buffer => {
  const four = Buffer.alloc(4);
  four.writeFloatLE(value);
  return Buffer.concat([varint((field << 3) | 5), four]);
};

const floatType = 1;
const intType = 7;

const attribute = (name: string, value: Attribute): Buffer => {
  if (Array.isArray(value)) return Buffer.concat([text(1, name), ...value.map((one) => int(8, one)), int(20, 7)]);
  if (typeof value === "number") return Buffer.concat([text(1, name), int(3, value), int(20, 2)]);
  return Buffer.concat([text(1, name), float(2, (value as { float: number }).float), int(20, 1)]);
};

const described = (name: string, type: number, dims: readonly (number | string)[]): Buffer => {
  const shape = dims.map((dim) => bytes(1, typeof dim === "string" ? text(2, dim) : int(1, dim)));
  return Buffer.concat([text(1, name), bytes(2, bytes(1, int(1, type), bytes(2, ...shape)))]);
};

/** A graph of operators; each gives the name of what comes out of it. */
export class OnnxGraph {
  readonly #nodes: Buffer[] = [];
  readonly #constants: Buffer[] = [];
  readonly #inputs: Buffer[] = [];
  readonly #outputs: Buffer[] = [];
  #names = 0;

  /** Whole numbers from outside. */
  input(name: string, dims: readonly (number | string)[]): string {
    this.#inputs.push(bytes(11, described(name, intType, dims)));
    return name;
  }

  /** Result, of floating-point numbers. */
  output(name: string, dims: readonly (number | string)[]): void {
    this.#outputs.push(bytes(12, described(name, floatType, dims)));
  }

  constant(dims: readonly number[], values: Values): string {
    const name = `constant${this.#names++}`;
    const raw = Buffer.from(values.buffer, values.byteOffset, values.byteLength);
    const type = values instanceof Float32Array ? floatType : intType;
    this.#constants.push(bytes(5, ...dims.map((dim) => int(1, dim)), int(2, type), text(8, name), bytes(9, raw)));
    return name;
  }

  whole(...values: number[]): string {
    return this.constant([values.length], BigInt64Array.from(values.map(BigInt)));
  }

  scalar(value: number): string {
    return this.constant([], Float32Array.of(value));
  }

  node(operator: string, inputs: readonly string[], attributes: Readonly<Record<string, Attribute>> = {}): string {
    const name = `${operator}${this.#names++}`;
    this.#nodes.push(
      bytes(
        1,
        ...inputs.map((one) => text(1, one)),
        text(2, name),
        text(4, operator),
        ...Object.entries(attributes).map(([key, value]) => bytes(5, attribute(key, value))),
      ),
    );
    return name;
  }

  model(): Buffer {
    const graph = bytes(7, ...this.#nodes, text(2, "graph"), ...this.#constants, ...this.#inputs, ...this.#outputs);
    return Buffer.concat([int(1, 8), text(2, "clevernet-test"), graph, bytes(8, text(1, ""), int(2, 17))]);
  }
}
