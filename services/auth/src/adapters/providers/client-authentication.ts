import { type ClientAuth, ClientSecretPost } from 'openid-client'

/**
 * How a client shows its secret at the token endpoint (RFC 6749 2.3.1). Basic is ours: the library writes `-` and `_` as
 * escapes too, and not every provider undoes them (Notion's ids are UUIDs); as they are they mean the same everywhere.
 */
export function clientAuthentication(
  how: 'basic' | 'post',
  { id, secret }: { id: string; secret: string },
): ClientAuth {
  if (how === 'post') return ClientSecretPost(secret)
  const credentials = Buffer.from(`${encodeURIComponent(id)}:${encodeURIComponent(secret)}`).toString('base64')
  return (_server, _client, _body, headers) => headers.set('authorization', `Basic ${credentials}`)
}
