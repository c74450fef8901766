import { median } from '@services/common/bench/median'
import { openConnection, type Send } from './http-client.ts'

const REQUESTS = 200

/** Requests about an address that an outsider can send, each with its body. */
const QUESTIONS: Record<string, (email: string) => object> = {
  '/token?grant_type=password': (email) => ({ email, password: 'not the password' }),
  '/signup': (email) => ({ email, password: 'a new password' }),
  '/recover': (email) => ({ email }),
  '/otp': (email) => ({ email, create_user: false }),
}

/**
 * Measures the median time of each request for confirmed accounts and for unknown addresses, alternating so that other
 * load on the machine affects both. `known` returns the address of the n-th account.
 */
export async function medianAnswers(base: string, known: (index: number) => string) {
  const send = openConnection(base)
  const rows: { path: string; known: number; unknown: number }[] = []
  for (const [question, [path, body]] of Object.entries(QUESTIONS).entries()) {
    const times = { known: [] as number[], unknown: [] as number[] }
    for (let i = -10; i < REQUESTS; i++) {
      // Every address is used once per request, so that the gap between mails does not affect the measurement.
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

/** Measures the time to an answer; throws for an unexpected status. */
export async function timeOf(send: Send, path: string, body: object): Promise<number> {
  const startedAt = performance.now()
  const { status, body: answer } = await send({ method: 'POST', path, body: JSON.stringify(body) })
  const ms = performance.now() - startedAt
  if (status !== 200 && status !== 400) throw new Error(`POST ${path}: ${status} ${answer}`)
  return ms
}
