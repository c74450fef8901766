import { expectEqualAnswers, REQUESTS, type StrangersRequest } from './enumeration-tests.ts'
import { test } from './service.ts'

/** All orders of three different requests. */
const others = (...taken: StrangersRequest[]) => REQUESTS.filter((request) => !taken.includes(request))
const pairs = REQUESTS.flatMap((first) => others(first).map((second) => [first, second] as const))

test.for(pairs)(
  'after %s and %s, every request is answered alike, whether or not the address has an account',
  async (pair, { service }) => {
    for (const third of others(...pair)) await expectEqualAnswers(service, [...pair, third])
  },
)
