// Webhooks of both services: secrets and signatures (https://www.standardwebhooks.com), waits between attempts, and
// reasons to pause or disable a receiver. Tables, events and requests are the service's.

/**
 * Headers of a signed message. An id that stays the same lets a receiver recognize a repetition. It has a signature for
 * each secret: a receiver that knows one of them accepts the message.
 */
export async function signMessage(
  secrets: readonly string[],
  { id, body, timestamp }: { id: string; body: string; timestamp: Date },
): Promise<Record<string, string>> {
  const { Webhook } = await import('standardwebhooks')
  return {
    'content-type': 'application/json',
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(timestamp.getTime() / 1000)),
    'webhook-signature': secrets.map((secret) => new Webhook(secret).sign(id, timestamp, body)).join(' '),
  }
}
