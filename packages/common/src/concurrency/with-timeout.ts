/** Resolves to the result of `work`, or to `late` after `ms`; late work continues, and its result is dropped. */
export async function withTimeout<Result>(ms: number, work: Result | Promise<Result>): Promise<Result | 'late'> {
  const { promise: late, resolve } = Promise.withResolvers<'late'>()
  const timer = setTimeout(resolve, ms, 'late')
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}
