import { afterAll, beforeAll, test } from 'vitest'
import {
  AGAIN,
  expectEqualAgain,
  expectEqualAgainForNumbers,
  expectEqualAnswers,
  type Known,
  OF_NUMBERS,
  type OfNumber,
  REQUESTS,
  type Stranger,
  type StrangersRequest,
  startStranger,
  WAYS_IN,
} from './enumeration-tests.ts'

let stranger: Stranger
beforeAll(async () => {
  stranger = await startStranger()
})
afterAll(() => stranger.close())

const pairsOf = (requests: readonly StrangersRequest[]) =>
  requests.flatMap((first) => requests.filter((other) => other !== first).map((second) => [first, second] as const))

/** Kinds of accounts that are tried in all orders of three; the others in all orders of two. */
const MAIN: Known[] = ['nobody', 'confirmed', 'pending', 'provider-only', 'imported']

test.for(pairsOf(WAYS_IN))(
  'after %s and %s, every request is answered alike, whether or not the address has an account',
  async (pair) => {
    for (const third of WAYS_IN.filter((request) => !pair.includes(request))) {
      await expectEqualAnswers(stranger, [...pair, third], MAIN)
    }
  },
)

test.for(pairsOf(REQUESTS))('%s and %s are answered alike, whatever account the address has', async (pair) => {
  await expectEqualAnswers(stranger, pair)
})

test.for(AGAIN)('%s, again and again, is answered alike, whatever account the address has', async (name) => {
  await expectEqualAgain(stranger, name)
})

test.for(Object.keys(OF_NUMBERS) as OfNumber[])(
  '%s, again and again, is answered alike, whatever account the number has',
  async (name) => {
    await expectEqualAgainForNumbers(stranger, name)
  },
)
