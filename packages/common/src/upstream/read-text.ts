export class AnswerTooLarge extends Error {
  override readonly name = 'AnswerTooLarge'
}

/** Reads an answer's body as text. Throws AnswerTooLarge past `maxBytes`, which closes the connection. */
export async function readText(response: Response, maxBytes: number): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength
    // Leaving the loop cancels the body.
    if (size > maxBytes) throw new AnswerTooLarge(`the answer is larger than ${maxBytes} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}
