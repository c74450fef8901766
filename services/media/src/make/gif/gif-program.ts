// A separate program, started by write-gif.ts. It reads raw frames from file 0 and writes the GIF, so that neither its
// work nor its memory is the service's. A frame cut off at the end is left out: only ffmpeg knows why it ended.
import { openSync, readSync, writeSync } from 'node:fs'
import { createGifWriter } from './gif-writer.ts'
import type { GifProgramInput } from './write-gif.ts'

const { file, format, totalCentiseconds } = JSON.parse(process.argv[2] ?? '') as GifProgramInput
const output = openSync(file, 'w')
const frame = new Uint8Array(format.width * format.height * (format.hasAlpha ? 4 : 3))

function readFrame(): boolean {
  for (let filled = 0; filled < frame.length; ) {
    const read = readSync(0, frame, filled, frame.length - filled, null)
    if (read === 0) return false
    filled += read
  }
  return true
}

const writer = createGifWriter(format, (bytes) => {
  for (let written = 0; written < bytes.length; ) written += writeSync(output, bytes, written)
})
while (readFrame()) writer.write(frame)
writer.end(totalCentiseconds)
