// Codes of authenticator apps (RFC 6238). A code is good for its step of 30 s and one beside it, and once. Using it
// spends its step and all earlier ones (totp.store.ts). Tests: ../../flows/mfa/totp.test.ts.
import { timingSafeEqual } from 'node:crypto'
import { apiError } from '../../errors.ts'
import { typedCode } from '../one-time-tokens/typed-code.ts'

/** Loaded with the first factor: it takes 5 MiB (measured). */
const library = () => import('otpauth')

/** RFC 6238 as every authenticator app implements it; some ignore other parameters. */
const SECRET_BYTES = 20
const DIGITS = 6
const PERIOD_SECONDS = 30
/** Tolerates phone clocks that are off by less than a step, and slow typing. */
const STEPS_OF_SKEW = 1

/** Capacity of a QR code of the highest correction, with a margin. */
const MAX_URI_BYTES = 1_200
/** Margin by which cameras find the code (ISO/IEC 18004). */
const QUIET_MODULES = 4
const MODULE_PIXELS = 3

/** Throws validation_failed when issuer and account are longer than a QR code can hold. */
export async function makeTotp(
  { random }: { random: (size: number) => Buffer },
  { issuer, account }: { issuer: string; account: string },
) {
  const { Secret, TOTP } = await library()
  const secret = new Secret({ buffer: new Uint8Array(random(SECRET_BYTES)).buffer })
  const uri = new TOTP({ issuer, label: account, secret, digits: DIGITS, period: PERIOD_SECONDS }).toString()
  if (uri.length > MAX_URI_BYTES) throw apiError('validation_failed', { message: 'issuer is too long' })
  return { secret: secret.base32, uri, qrCode: await qrCode(uri) }
}

/** Returns the step of a code as typed, if that is acceptable now. Right and wrong codes take the same time. */
export async function stepOfCode(base32: string, code: string, now: Date): Promise<number | undefined> {
  const { Secret, TOTP } = await library()
  const secret = Secret.fromBase32(base32)
  const totp = new TOTP({ secret, digits: DIGITS, period: PERIOD_SECONDS })
  const current = Math.floor(now.getTime() / 1000 / PERIOD_SECONDS)
  const given = Buffer.from(typedCode(code))
  let found: number | undefined
  for (let step = current - STEPS_OF_SKEW; step <= current + STEPS_OF_SKEW; step++) {
    const expected = Buffer.from(totp.generate({ timestamp: step * PERIOD_SECONDS * 1000 }))
    if (given.length === expected.length && timingSafeEqual(given, expected)) found = step
  }
  return found
}

/** Draws an SVG document of one path, without `#`: clients put it behind `data:image/svg+xml;utf-8,` unescaped. */
async function qrCode(text: string): Promise<string> {
  const { encode } = await import('uqr')
  const { size, data } = encode(text, { ecc: 'H', border: QUIET_MODULES })
  const squares = data.flatMap((row, y) => row.flatMap((isBlack, x) => (isBlack ? [`M${x} ${y}h1v1h-1z`] : [])))
  const pixels = size * MODULE_PIXELS
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<svg xmlns="http://www.w3.org/2000/svg" width="${pixels}" height="${pixels}" viewBox="0 0 ${size} ${size}" shape-rendering="crispEdges">`,
    `<rect width="${size}" height="${size}" fill="white"/>`,
    `<path d="${squares.join('')}" fill="black"/>`,
    '</svg>',
  ].join('')
}
