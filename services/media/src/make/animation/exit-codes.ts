/**
 * Exit codes of `../transcode/animation-program.ts`: a broken file, too many bytes of pixels, a fault of the machine.
 */
export const EXIT = { broken: 3, tooLarge: 4, machine: 5 } as const
