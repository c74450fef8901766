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

/** How long an answer took; any other than one to a right or a wrong question is an error. */
export async function timeOf(send: Send, path: string, body: object): Promise<number> {
  const startedAt = performance.now()
  const { status, body: answer } = await send({ method: 'POST', path, body: JSON.stringify(body) })
  const ms = performance.now() - startedAt
  if (status !== 200 && status !== 400) throw new Error(`POST ${path}: ${status} ${answer}`)
  return ms
}
