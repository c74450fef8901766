// Domains whose mail servers never answer the mail server of ours, in real time: an attempt hangs for half a minute.
import { afterEach, beforeEach, expect, test } from 'vitest'
import { bearer } from '../test/service.ts'
import { openStage, signUp } from '../test/service-process.ts'

const SLOW_MAILS = 40
const WITHIN_MS = 5_000
/** Attempts time out after 30 s, so that this covers first attempts, retries, and messages that are not attempted. */
const LASTING_MS = 100_000

let stage: Awaited<ReturnType<typeof openStage>>

beforeEach(async () => {
  stage = await openStage()
})
afterEach(() => stage.end())

test.each([1, 5])(
  'forty mails to domains that never answer, %i in all, delay no mail to another by five seconds, on two replicas',
  async (domains) => {
    const replicas = [await stage.serve(), await stage.serve()]
    const base = (i: number) => replicas[i % replicas.length]?.base as string
    const admin = await bearer({ role: 'service_role' })
    await stage.mailbox.hang('slow.example')
    for (let i = 0; i < SLOW_MAILS; i++) {
      const body = JSON.stringify({ email: `u${i}@${i % domains}-slow.example` })
      const invited = await fetch(`${base(i)}/invite`, { method: 'POST', headers: admin, body })
      expect(invited.status).toBe(200)
    }
    const slowest = { ms: 0, at: 0 }
    const startedAt = Date.now()
    for (let i = 0; Date.now() - startedAt < LASTING_MS; i++) {
      const askedAt = Date.now()
      expect((await signUp(base(i), `u${i}@fast.example`)).status).toBe(200)
      await stage.mailbox.waitFor(`u${i}@fast.example`)
      const ms = Date.now() - askedAt
      if (ms > slowest.ms) Object.assign(slowest, { ms, at: askedAt - startedAt })
      await new Promise((resolve) => setTimeout(resolve, 1_000))
    }
    expect(slowest.ms, `${slowest.at} ms after the start`).toBeLessThan(WITHIN_MS)
  },
  200_000,
)
