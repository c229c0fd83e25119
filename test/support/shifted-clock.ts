// Imported before a program (`node --import`), gives it a wall clock that is wrong by CLOCK_OFFSET_MS. Timers go on as
// they do when somebody sets the clock: they never follow it.
const offset = Number(process.env.CLOCK_OFFSET_MS);
const RealDate = Date;

globalThis.Date = class extends RealDate {
  constructor(...given: [] | [string | number | Date]) {
    if (given.length === 0) super(RealDate.now() + offset);
    else super(...(given as [string]));
  }

  static override now(): number {
    return RealDate.now() + offset;
  }
} as DateConstructor;
