import { open } from 'node:fs/promises'
import type { LaidFrame } from '../plan/unsure-pixels.ts'
import { isFrame } from './animation.ts'
import { readApng } from './read-apng.ts'

/** Places of the frames of an APNG, and what becomes of them. */
export async function readLaidApng(path: string): Promise<LaidFrame[]> {
  await using file = await open(path)
  const frames: LaidFrame[] = []
  let isOpaque = true
  for await (const read of readApng(file)) {
    if ('mayBeTransparent' in read) isOpaque = !read.mayBeTransparent
    if (!isFrame(read)) continue
    const { left, top, width, height, blend, dispose } = read
    const after = dispose === 1 ? 'cleared' : dispose === 2 ? 'restored' : 'kept'
    frames.push({ left, top, width, height, isOpaque, clears: blend === 0, after })
  }
  return frames
}
