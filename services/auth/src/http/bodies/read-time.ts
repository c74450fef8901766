const TIME = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/

/** Reads a date, which begins at midnight UTC, or a time with its zone; undefined for anything else. */
export function readTime(text: string): Date | undefined {
  const time = new Date(text)
  return TIME.test(text) && !Number.isNaN(time.getTime()) ? time : undefined
}
