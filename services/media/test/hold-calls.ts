import { onTestFinished } from 'vitest'

type Calls<Name extends string> = { [name in Name]: (...args: never[]) => Promise<unknown> }

/** Makes the calls of `method`, or the `first` alone, wait for `release` until the test ends. */
export function holdCalls<Name extends string>(owner: Calls<Name>, name: Name, { first = false } = {}) {
  const [reached, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const real = owner[name]
  owner[name] = async (...args) => {
    if (first) owner[name] = real
    reached.resolve()
    await released.promise
    return real(...args)
  }
  onTestFinished(() => {
    owner[name] = real
    released.resolve()
  })
  return { reached: reached.promise, release: () => released.resolve() }
}
