// Clients of the OAuth server in tests, and what they are answered.
import { expect } from 'vitest'
import type { Answer } from '../../../../test/service.ts'

/** A registered client, as its own code knows it. */
export interface TestClient {
  clientId: string
  /** Empty for a public client. */
  secret: string
  /** Authorization by its id and secret. */
  basic: { authorization: string }
}

export const basicOf = (id: string, secret: string) => ({
  authorization: `Basic ${Buffer.from(`${encodeURIComponent(id)}:${encodeURIComponent(secret)}`).toString('base64')}`,
})

/** Failure of an endpoint of the OAuth server. */
export const failure = (status: number, error: string, description: unknown = expect.any(String)) => ({
  status,
  body: { error, error_description: description },
})

/** Status and body of an answer. */
export const shown = ({ status, body }: Answer) => ({ status, body })
