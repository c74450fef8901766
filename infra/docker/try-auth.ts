import type { Image } from './build-root.ts'
import { expectStatus, type Trial } from './trial.ts'

/** Signs up and signs in; the address counts as confirmed, so that no mail server is needed. */
export async function tryAuth(_image: Image, { base, say }: Trial): Promise<void> {
  const body = JSON.stringify({ email: 'ada@example.com', password: 'correct horse battery' })
  const post = (path: string) =>
    fetch(base + path, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
  await expectStatus(await post('/signup'), 200)
  const session = await expectStatus(await post('/token?grant_type=password'), 200)
  const headers = { authorization: `Bearer ${(session as { access_token: string }).access_token}` }
  const user = await expectStatus(await fetch(`${base}/user`, { headers }), 200)
  say('signed up and in', (user as { email: string }).email)
}
