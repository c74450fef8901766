import { setTimeout as sleep } from 'node:timers/promises'
import { median } from '@services/common/bench/median'
import { openConnection, type Send } from './http-client.ts'

const REQUESTS = 200

/** What an outsider can ask about an address, each with a body for it. */
const QUESTIONS: Record<string, (email: string) => object> = {
  '/token?grant_type=password': (email) => ({ email, password: 'not the password' }),
  '/signup': (email) => ({ email, password: 'a new password' }),
  '/recover': (email) => ({ email }),
  '/otp': (email) => ({ email, create_user: false }),
}

/**
 * The median time of each question for confirmed accounts and for nobody, asked in turns so that whatever else the machine
 * does falls on both. `known` gives the address of the n-th account.
 */
export async function medianAnswers(base: string, known: (index: number) => string) {
  const send = openConnection(base)
  const rows: { path: string; known: number; unknown: number }[] = []
  for (const [question, [path, body]] of Object.entries(QUESTIONS).entries()) {
    const times = { known: [] as number[], unknown: [] as number[] }
    for (let i = -10; i < REQUESTS; i++) {
      // Every address is used once per question: the gaps between mails are the same for all and not what is measured.
      const index = question * (REQUESTS + 10) + i + 10
      const pair = [
        ['known', known(index)],
        ['unknown', `nobody-${index}@example.com`],
      ] as const
      for (const [kind, email] of i % 2 ? pair : pair.toReversed()) {
        const ms = await timeOf(send, path, body(email))
        if (i >= 0) times[kind].push(ms)
      }
    }
    rows.push({ path, known: median(times.known), unknown: median(times.unknown) })
  }
  return rows
}

/** Requests right after an answer, by whose time it would be seen that the service still works at something. */
const LOOKS = 12
/** Of each kind; of 90, chance alone stays within 0.08 of 0.5 in 94 of 100 runs. */
const PROBES = Number(process.env.BENCH_PROBES || 90)
/** Longer than what a probe leaves behind: two jobs, each delayed by up to 500 ms, and their work; 1.2 s were seen. */
const PAUSE_MS = 1_500

/** The same for what a worker does after the answer: all questions whose answer is made or sent later. */
const LATER: Record<string, (email: string) => object> = {
  '/otp': (email) => ({ email, create_user: false }),
  '/recover': (email) => ({ email }),
  '/magiclink': (email) => ({ email }),
  '/resend': (email) => ({ email, type: 'signup' }),
  '/signup': (email) => ({ email, password: 'a new password' }),
}

/**
 * How well the time of the requests right after an answer tells a confirmed account from nobody (0.5: not at all, 1: always),
 * and what the same measure finds between two kinds of nobody. In random order, each address once per question.
 */
export async function tellingAfterwards(base: string, known: (index: number) => string) {
  const send = openConnection(base)
  const rows: { path: string; known: number; control: number }[] = []
  for (const [question, [path, body]] of Object.entries(LATER).entries()) {
    const times = { known: [] as number[], unknown: [] as number[], control: [] as number[] }
    const kinds = ['known', 'unknown', 'control'] as const
    const order = Array.from({ length: (PROBES + 5) * kinds.length }, (_, index) => ({ index, at: Math.random() }))
    const warmUp = 5 * kinds.length
    for (const { index } of [...order.slice(0, warmUp), ...order.slice(warmUp).toSorted((a, b) => a.at - b.at)]) {
      const kind = kinds[index % kinds.length] ?? 'control'
      const number = question * (PROBES + 5) + Math.floor(index / kinds.length)
      const email = kind === 'known' ? known(number) : `after-${kind}-${question}-${number}@example.com`
      await sleep(PAUSE_MS)
      await timeOf(send, path, body(email))
      const startedAt = performance.now()
      for (let look = 0; look < LOOKS; look++) await send({ method: 'GET', path: '/health/ready' })
      if (index >= warmUp) times[kind].push(performance.now() - startedAt)
    }
    const { unknown } = times
    rows.push({ path, known: chanceOfLonger(times.known, unknown), control: chanceOfLonger(times.control, unknown) })
  }
  return rows
}

/** How often one of the first took longer than one of the second (AUC). */
const chanceOfLonger = (first: number[], second: number[]) =>
  first.reduce((sum, a) => sum + second.filter((b) => a > b).length + second.filter((b) => a === b).length / 2, 0) /
  (first.length * second.length)

async function timeOf(send: Send, path: string, body: object): Promise<number> {
  const startedAt = performance.now()
  const { status, body: answer } = await send({ method: 'POST', path, body: JSON.stringify(body) })
  const ms = performance.now() - startedAt
  if (status !== 200 && status !== 400) throw new Error(`POST ${path}: ${status} ${answer}`)
  return ms
}
