import type { Mount } from './container.ts'

/** A service that runs in its image, for whoever uses it as a client would. */
export interface Trial {
  base: string
  env: Record<string, string>
  mounts: Mount[]
  /** On this machine, what /data is inside. */
  data: string
  say(what: string, detail: string): void
}

/** The body as JSON; throws with it when the status is another one. */
export async function expectStatus(answer: Response, status: number): Promise<unknown> {
  const text = await answer.text()
  if (answer.status !== status) throw new Error(`${answer.url} answered ${answer.status}, not ${status}: ${text}`)
  return text === '' ? undefined : JSON.parse(text)
}
