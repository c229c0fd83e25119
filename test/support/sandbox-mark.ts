/** Label of sandboxes that tests have made; its value is the run's. */
export const markLabel = "clevernet.test";
