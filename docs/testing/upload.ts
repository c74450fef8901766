import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { inject } from 'vitest'

/** Uploads a clip and waits for its files; returns their addresses. */
export async function upload(path: string, url?: string) {
  const { mediaUrl, dataDir } = inject('devServices')
  const form = new FormData()
  form.set('file', new Blob([await readFile(path)]), 'clip.mp4')
  const token = (await readFile(join(dataDir, 'media/dev-token'), 'utf8')).trim()
  const answer = await fetch(`${url ?? mediaUrl}/media/upload`, { method: 'POST', body: form, headers: { token } })
  const { success } = (await answer.json()) as { success: { page: string; files: { mp4: string } } }
  return success
}
