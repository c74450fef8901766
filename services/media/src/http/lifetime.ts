/** Whole seconds until a moment; without one, for ever. */
export const secondsUntil = (moment: Date | null | undefined, now: Date): number =>
  moment ? Math.max(0, Math.floor((moment.getTime() - now.getTime()) / 1000)) : Number.POSITIVE_INFINITY
