/** Headers of a signed message (https://www.standardwebhooks.com). An id that stays the same lets a receiver recognize a repetition. */
export async function signMessage(
  secret: string,
  { id, body, timestamp }: { id: string; body: string; timestamp: Date },
): Promise<Record<string, string>> {
  const { Webhook } = await import('standardwebhooks')
  return {
    'content-type': 'application/json',
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(timestamp.getTime() / 1000)),
    'webhook-signature': new Webhook(secret).sign(id, timestamp, body),
  }
}
