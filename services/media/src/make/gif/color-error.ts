/** Weights of errors in red, green and blue: the eye sees green best. */
export const WEIGHTS = [15, 30, 8] as const
const [RED, GREEN, BLUE] = WEIGHTS

/** Error of a color that is one step off in each channel. */
export const ERROR_OF_ONE_STEP = RED + GREEN + BLUE

/**
 * Weighted square of a color's distance. Integers, so that every machine finds the same; `imul` spares checks for
 * overflow, which takes a sixth off the search of lossy-lzw.ts.
 */
export const colorError = (red: number, green: number, blue: number): number =>
  (Math.imul(RED, Math.imul(red, red)) +
    Math.imul(GREEN, Math.imul(green, green)) +
    Math.imul(BLUE, Math.imul(blue, blue))) |
  0
