// Kept uploads without a browser: which of them a page offers to go on with, or to discard.
import { beforeEach, expect, test, vi } from 'vitest'

const SCRIPT = new URL('../assets/home/kept-uploads.js', import.meta.url).href
const { changes, forgetUpload, interruptedUploads, keepUpload, whileInUse } = await import(SCRIPT)

beforeEach(() => {
  const kept = new Map<string, string>()
  vi.stubGlobal('sessionStorage', {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => kept.set(key, value),
    removeItem: (key: string) => kept.delete(key),
  })
})

const upload = { path: 'tus/1', mark: 'a.gif|1', name: 'a.gif' }

test('an upload that is being sent is not interrupted; one that stopped is, until it ends', async () => {
  keepUpload(upload)
  expect(interruptedUploads()).toEqual([upload])
  await whileInUse(upload.mark, async () => expect(interruptedUploads()).toEqual([]))
  expect(interruptedUploads()).toEqual([upload])
  await whileInUse(upload.mark, async () => forgetUpload(upload.path))
  expect(interruptedUploads()).toEqual([])
})

test('an upload of a paused row is not interrupted', () => {
  keepUpload(upload)
  expect(interruptedUploads([undefined, upload.path])).toEqual([])
})

test('each change is heard, so that the notice goes with the last of its uploads', async () => {
  const heard: number[] = []
  changes.addEventListener('change', () => heard.push(interruptedUploads().length))
  keepUpload(upload)
  const failed = whileInUse(upload.mark, () => Promise.reject(new Error('lost')))
  await expect(failed).rejects.toThrow('lost')
  forgetUpload(upload.path)
  expect(heard).toEqual([1, 0, 1, 0])
})
