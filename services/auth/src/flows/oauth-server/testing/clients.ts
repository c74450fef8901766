// Clients of the OAuth server in tests, and what they are answered.
import { expect } from 'vitest'
import type { Answer, TestService } from '../../../../test/service.ts'

export const CALLBACK = 'https://app.example/callback'

/** A registered client, as its own code knows it. */
export interface TestClient {
  id: string
  secret: string
  /** Authorization by its id and secret. */
  basic: { authorization: string }
}

export const basicOf = (id: string, secret: string) => ({
  authorization: `Basic ${Buffer.from(`${encodeURIComponent(id)}:${encodeURIComponent(secret)}`).toString('base64')}`,
})

/** Registers a client with these members beside its redirect address. */
export async function registered(service: TestService, metadata: object = {}): Promise<TestClient> {
  const { status, body } = await service.post(
    '/admin/oauth/clients',
    { redirect_uris: [CALLBACK], ...metadata },
    service.admin,
  )
  expect([status, body]).toEqual([201, expect.anything()])
  const { client_id: id, client_secret: secret = '' } = body
  return { id, secret, basic: basicOf(id, secret) }
}

/** Failure of an endpoint of the OAuth server. */
export const failure = (status: number, error: string, description: unknown = expect.any(String)) => ({
  status,
  body: { error, error_description: description },
})

/** Status and body of an answer. */
export const shown = ({ status, body }: Answer) => ({ status, body })
