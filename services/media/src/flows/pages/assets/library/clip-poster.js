// Choice of the poster: the reader moves through the clip, and the picture at that moment is taken.
import { call } from '../owner/api.js'
import { text } from '../owner/page-data.js'
import { toast, toastFailure } from '../owner/toast.js'

/** @param {string} path */
export function startPoster(path) {
  const part = /** @type {HTMLDetailsElement} */ (document.getElementById('poster'))
  const range = /** @type {HTMLInputElement} */ (part.querySelector('input'))
  const output = /** @type {HTMLOutputElement} */ (part.querySelector('output'))
  const button = /** @type {HTMLButtonElement} */ (part.querySelector('button'))
  const video = document.createElement('video')
  Object.assign(video, { muted: true, playsInline: true, preload: 'auto' })
  const show = () => {
    video.currentTime = Number(range.value)
    output.value = `${Number(range.value).toFixed(2)} s`
    range.setAttribute('aria-valuetext', output.value)
  }
  part.addEventListener('toggle', () => {
    if (!part.open || video.isConnected) return
    video.src = part.dataset.mp4 ?? ''
    range.closest('label')?.before(video)
    show()
  })
  range.addEventListener('input', show)
  button.addEventListener('click', async () => {
    button.disabled = true
    try {
      await call(path, { method: 'PATCH', body: { poster_at: Number(range.value) } })
      toast(text('posterMaking'))
    } catch (error) {
      toastFailure(error)
    } finally {
      button.disabled = false
    }
  })
}
