const DAY_MS = 86_400_000

/** For so long a delivery is tried. */
export const TRY_FOR_MS = DAY_MS

/** Doubles from one to the other: 10 s, 20 s, 40 s … 4 h; some sixteen attempts in a day. */
const [FIRST_WAIT_MS, LONGEST_WAIT_MS] = [10_000, 4 * 3_600_000]

/** How long to wait after so many failed attempts. */
export const waitAfter = (attempts: number): number => Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (attempts - 1))

/** A receiver that did not answer at all costs a place and seconds each time: until then none of its events is tried. */
export const pauseAfter = (failures: number): number => Math.min(600_000, 10_000 * 2 ** (failures - 1))

/** A receiver that has failed for so long, and never not, is given up. */
export const DISABLE_AFTER_MS = 5 * DAY_MS
