const projects = (...patterns: string[]) => patterns.flatMap((pattern) => ['--project', pattern])

/**
 * Options of vitest for the files of a tier, as `test` and `test:slow` of package.json have them; guides are left out.
 */
export const FAST_TIER: readonly string[] = projects('!*:slow', '!docs', '!faults')
export const SLOW_TIER: readonly string[] = projects('*:slow')
