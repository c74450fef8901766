import { HOSTILE_SEED, hostileRuns } from '@services/common/testing/http/hostile-run'
import fc from 'fast-check'
import { afterAll, beforeAll, test } from 'vitest'
import { wrongValue } from '../../../test/hostile-values.ts'
import { type ProviderSignIns, startProviderSignIns } from '../../../test/provider-sign-in.ts'
import { PROVIDER_EXAMPLES } from '../../../test/upstreams/provider-examples.ts'
import type { Step } from '../../../test/upstreams/sign-in-providers.ts'

const RUNS = hostileRuns(15)

/** Signed in, or refused for a reason that is not a failure of ours. */
const EXPECTED = /^https:\/\/site\.example\/app(#access_token=|\?error=[^#]*error_description=(?!Something\+went))/

let all: ProviderSignIns
beforeAll(async () => {
  all = await startProviderSignIns({ AUTH_MAILER_ALLOW_UNVERIFIED_EMAIL_SIGN_INS: 'true' })
})
afterAll(() => all.close())

/** The place of every member of an answer, at any depth. */
function placesIn(json: unknown): { within: Record<string, unknown>; member: string }[] {
  if (typeof json !== 'object' || json === null) return []
  const within = json as Record<string, unknown>
  return Object.keys(within).flatMap((member) => [{ within, member }, ...placesIn(within[member])])
}

/** The usual answer with one member that is something else. */
function withOther(usual: string, at: number, value: unknown): string {
  if (!usual.startsWith('{') && !usual.startsWith('[')) return String(JSON.stringify(value))
  const answer: unknown = JSON.parse(usual)
  const places = placesIn(answer)
  const place = places[at % places.length]
  if (place) place.within[place.member] = value
  return JSON.stringify(answer)
}

const STEPS = ['token', 'profile'] as const satisfies readonly Step[]
const ASKED = Object.entries(PROVIDER_EXAMPLES).flatMap(([name, { endpoints }]) =>
  STEPS.filter((step) => Object.values(endpoints).some((endpoint) => endpoint.step === step)).map((step) => ({
    name,
    step,
  })),
)

test.each(ASKED)(
  '$name: whatever stands in the answer of its $step endpoint, the browser ends at the application',
  async ({ name, step }) => {
    const property = fc.asyncProperty(fc.nat(), wrongValue, async (at, value) => {
      all.far.answer(name, step, (response, usual) => void response.writeHead(200).end(withOther(usual, at, value)))
      const { answer } = await all.signIn(name, all.newAccount(name))
      const location = String(answer.headers.location)
      if (answer.status !== 302 || !EXPECTED.test(location)) throw new Error(`${answer.status} ${location}`)
    })
    await fc.assert(property, { seed: HOSTILE_SEED, numRuns: RUNS })
  },
  120_000 + RUNS * 1_000,
)
