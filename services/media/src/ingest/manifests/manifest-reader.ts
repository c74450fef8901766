// A separate program, started by read-manifests.ts: it limits the time, memory and network of the parsers. A few
// kilobytes of commas or brackets keep either of them busy for minutes.
import { readFileSync } from 'node:fs'
import { ApiError } from '@services/common/errors'
import type { Reading } from './manifest.ts'
import type { ReaderAnswer, ReaderInput } from './read-manifests.ts'

const { sources, limits } = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as ReaderInput
const readers = {
  hls: async () => (await import('./hls.ts')).readHls,
  dash: async () => (await import('./dash.ts')).readDash,
}

async function answer(): Promise<ReaderAnswer> {
  try {
    const readings: Reading[] = []
    for (const { kind, text, url } of sources) readings.push((await readers[kind]())(text, url, limits))
    return { readings }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    return { refusal: { code: error.code, details: error.details } }
  }
}

process.stdout.write(JSON.stringify(await answer()))
