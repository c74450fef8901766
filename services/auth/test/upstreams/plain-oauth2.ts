// A service with OAuth 2 and without OpenID Connect: its profile has a numeric id and claims of its own.
import { createHash, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { createFarServer } from '@services/common/testing/http/far-server'

export interface PlainOAuth2 {
  url: string
  /** Addresses of a provider that it is. */
  addresses: { authorization_url: string; token_url: string; userinfo_url: string }
  /** Profile from now on. */
  profile: object
  /** Client authentication that it accepts. */
  accepts: 'basic' | 'post' | 'none'
  /** Forms that its token endpoint got. */
  forms: Record<string, string>[]
  /** Takes the browser's request; returns the parameters of the callback. */
  visit(location: string): Record<string, string>
  close(): void
}

const CREDENTIALS = ['our-client', 'a-secret-of-the-client'] as const

export async function startPlainOAuth2(): Promise<PlainOAuth2> {
  const challenges = new Map<string, string | null>()
  const listener: RequestListener = async (request, response) => {
    const answer = (status: number, json: object) => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(json))
    }
    if (request.url === '/user') {
      const isKnown = request.headers.authorization === 'Bearer the-access-token'
      return isKnown ? answer(200, far.profile) : answer(401, { message: 'Bad credentials' })
    }
    if (request.url !== '/token') return answer(404, {})
    const form = Object.fromEntries(new URLSearchParams(await text(request)))
    far.forms.push(form)
    const basic = `Basic ${Buffer.from(CREDENTIALS.join(':')).toString('base64')}`
    const isKnown = {
      basic: request.headers.authorization === basic && form.client_secret === undefined,
      post: form.client_id === CREDENTIALS[0] && form.client_secret === CREDENTIALS[1],
      none: form.client_id === CREDENTIALS[0] && form.client_secret === undefined && !request.headers.authorization,
    }[far.accepts]
    // A word of its own, with status 200: as some services answer.
    if (!isKnown) return answer(200, { error: 'incorrect_client_credentials' })
    const challenge = challenges.get(form.code ?? '')
    const proof = createHash('sha256')
      .update(form.code_verifier ?? '')
      .digest('base64url')
    const isProven = challenge === null ? form.code_verifier === undefined : challenge === proof
    if (challenge === undefined || !isProven) return answer(400, { error: 'invalid_grant' })
    challenges.delete(form.code ?? '')
    answer(200, { access_token: 'the-access-token', token_type: 'bearer', scope: 'user' })
  }
  const server = createFarServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const far: PlainOAuth2 = {
    url,
    addresses: { authorization_url: `${url}/authorize`, token_url: `${url}/token`, userinfo_url: `${url}/user` },
    profile: {},
    accepts: 'post',
    forms: [],
    visit(location) {
      const { searchParams } = new URL(location)
      const code = randomUUID()
      challenges.set(code, searchParams.get('code_challenge'))
      return { code, state: searchParams.get('state') ?? '' }
    },
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
  return far
}
