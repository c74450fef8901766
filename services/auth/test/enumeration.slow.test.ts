import { afterAll, beforeAll, describe, test } from 'vitest'
import {
  AGAIN,
  ALL_KNOWN,
  expectEqualAgain,
  expectEqualAgainForNumbers,
  expectEqualAnswers,
  FEW_PAUSES,
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

/** Kinds that the orders of three leave out, and the one that all are compared with. */
const OTHERS = ALL_KNOWN.filter((kind) => kind === 'nobody' || !MAIN.includes(kind))
/** Whether orders of three begin with this pair. */
const isOfThree = (pair: readonly StrangersRequest[]) => pair.every((request) => WAYS_IN.includes(request))

test.for(pairsOf(REQUESTS))('%s and %s are answered alike, whatever account the address has', async (pair) => {
  await expectEqualAnswers(stranger, pair, isOfThree(pair) ? OTHERS : ALL_KNOWN)
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

interface Variant {
  settings: Record<string, string>
  /** Kinds that such a service has none of. */
  without?: Known[]
  /** Requests whose answer reveals an account there on purpose. */
  revealing?: string[]
  /** Whether the setting decides about mails alone: requests that send none are those of the usual service. */
  ofMails?: boolean
}

/** Requests that are handled as others of the list are, whatever the settings: the usual service shows them. */
const HANDLED_ALIKE = /^a guess at a code of type|by its older path$/

const SENDS_NONE = /^a (guess|sign-in (with|in another audience))/

/** A new user is signed in at once, which a taken address cannot be. */
const SIGNED_IN_AT_ONCE = ['a sign-up', 'a sign-up with a code challenge', 'a sign-up in another audience']

describe.each<[string, Variant]>([
  [
    'sign-ups disabled',
    { settings: { AUTH_DISABLE_SIGNUP: 'true' }, without: ['pending', 'assumed', 'provider-only'] },
  ],
  ['no mail to owners', { settings: { AUTH_MAILER_ACCOUNT_EXISTS_ENABLED: 'false' }, ofMails: true }],
  [
    'autoconfirm',
    {
      settings: { AUTH_MAILER_AUTOCONFIRM: 'true' },
      without: ['pending'],
      revealing: [...SIGNED_IN_AT_ONCE, 'a sign-in at a provider'],
    },
  ],
])('with %s', (_, { settings, without = [], revealing = [], ofMails = false }) => {
  let other: Stranger
  beforeAll(async () => {
    other = await startStranger(settings)
  })
  afterAll(() => other.close())

  const isTried = (name: string) =>
    !revealing.includes(name) && !HANDLED_ALIKE.test(name) && !(ofMails && SENDS_NONE.test(name))

  test.for(AGAIN.filter(isTried))('%s, again and again, is answered alike', async (name) => {
    const kinds = ALL_KNOWN.filter((kind) => !without.includes(kind))
    await expectEqualAgain(other, name, { kinds, pauses: FEW_PAUSES })
  })
})
