import { CommandFailure } from '@services/common/cli'

/** Bound on reading only; the flow refuses passwords that are too long (password-rules.ts). */
const MAX_LINE_BYTES = 16 * 1024

/** Reads the first line of `input`: arguments would be visible in the list of processes and in the shell's history. */
export async function readPassword(input: AsyncIterable<Uint8Array>): Promise<string> {
  const password = decode(await readLine(input)).replace(/\r$/, '')
  if (password === '') throw new CommandFailure('there is no password on standard input')
  if (password.includes('\0')) throw new CommandFailure('a password must not hold NUL')
  return password
}

async function readLine(input: AsyncIterable<Uint8Array>): Promise<Buffer> {
  let line = Buffer.alloc(0)
  for await (const chunk of input) {
    line = Buffer.concat([line, chunk])
    const end = line.indexOf('\n')
    if (end >= 0) return line.subarray(0, end)
    if (line.length > MAX_LINE_BYTES) throw new CommandFailure('the line on standard input is too long for a password')
  }
  return line
}

function decode(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new CommandFailure('the password on standard input is not valid UTF-8')
  }
}
