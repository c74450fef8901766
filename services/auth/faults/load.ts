import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

const PASSWORD = 'correct horse'

/** The only answers a fault may cause; 0 stands for a connection that broke or was refused. */
export const ALLOWED = [0, 200, 429, 503, 504]

export interface Load {
  /** Addresses whose sign-up was answered 200. */
  acknowledged: string[]
  /** Number of answers by status. */
  statuses: Record<number, number>
  /** Time of the last answer other than 200 (`performance.now`). */
  lastFailureAt: number
  /** Longest time in ms from a request to its answer. */
  longest: number
  /** Tokens of users who refresh continuously; an unanswered refresh is repeated with the same token. */
  refreshTokens: string[]
  stop(): Promise<void>
}

export async function post(url: string, body: object, withinMs = 10_000): Promise<{ status: number; body: unknown }> {
  try {
    const signal = AbortSignal.timeout(withinMs)
    const response = await fetch(url, { method: 'POST', body: JSON.stringify(body), signal })
    return { status: response.status, body: await response.json() }
  } catch {
    return { status: 0, body: undefined }
  }
}

export const signIn = (base: string, email: string) =>
  post(`${base}/token?grant_type=password`, { email, password: PASSWORD })

/** Creates a user by an admin, so that the address needs no mail. */
export async function createPerson(base: string, admin: { authorization: string }): Promise<string> {
  const email = `${randomUUID()}@example.com`
  const body = JSON.stringify({ email, password: PASSWORD, email_confirm: true })
  const answer = await fetch(`${base}/admin/users`, { method: 'POST', body, headers: admin })
  if (answer.status !== 200) throw new Error(`no person: ${answer.status}`)
  return email
}

/** Starts eight loops that sign up and four that refresh, each with one request at a time, at these bases in turn. */
export function startLoad(bases: readonly string[], refreshTokens: readonly string[]): Load {
  const load: Load = {
    acknowledged: [],
    statuses: {},
    lastFailureAt: 0,
    longest: 0,
    refreshTokens: [...refreshTokens],
    stop,
  }
  let isOver = false
  let turn = 0
  const ask = async (path: string, body: object) => {
    const startedAt = performance.now()
    const answer = await post(`${bases[turn++ % bases.length]}${path}`, body)
    load.longest = Math.max(load.longest, performance.now() - startedAt)
    load.statuses[answer.status] = (load.statuses[answer.status] ?? 0) + 1
    // A service that is down refuses at once; a real client would not retry a thousand times a second.
    if (answer.status !== 200) {
      load.lastFailureAt = performance.now()
      await sleep(50)
    }
    return answer
  }
  const signUps = async () => {
    while (!isOver) {
      const email = `${randomUUID()}@example.com`
      if ((await ask('/signup', { email, password: PASSWORD })).status === 200) load.acknowledged.push(email)
    }
  }
  const refreshes = async (index: number) => {
    while (!isOver) {
      const refresh_token = load.refreshTokens[index]
      const { status, body } = await ask('/token?grant_type=refresh_token', { refresh_token })
      if (status === 200) load.refreshTokens[index] = (body as { refresh_token: string }).refresh_token
      await sleep(20)
    }
  }
  const loops = [...Array.from({ length: 8 }, signUps), ...refreshTokens.map((_, index) => refreshes(index))]
  async function stop() {
    isOver = true
    await Promise.all(loops)
  }
  return load
}
