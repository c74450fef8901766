// Previews in a grid of clips, of the library and of albums. The clip under the pointer or the focus plays without
// sound, one at a time, unless motion is unwanted.

/** Time before a preview begins: a pointer on its way starts none. */
const AFTER_MS = 150

const still = matchMedia('(prefers-reduced-motion: reduce)')

/**
 * Plays the file of `data-mp4` of a link.
 * @param {HTMLElement} grid @param {(link: Element, video: HTMLVideoElement) => void} place Puts a video into its card.
 */
export function startPreviews(grid, place) {
  /** @type {{ link: Element, timer: ReturnType<typeof setTimeout>, video?: HTMLVideoElement } | undefined} */
  let current
  const stop = () => {
    if (!current) return
    clearTimeout(current.timer)
    current.video?.pause()
    current.video?.removeAttribute('src')
    current.video?.load()
    current.video?.remove()
    current = undefined
  }
  const show = (/** @type {Element | null} */ link) => {
    if (link === (current?.link ?? null)) return
    stop()
    if (!link || still.matches) return
    current = { link, timer: setTimeout(() => play(link), AFTER_MS) }
  }
  const play = (/** @type {Element} */ link) => {
    if (!current || still.matches) return
    const video = document.createElement('video')
    Object.assign(video, { muted: true, loop: true, playsInline: true, src: link.getAttribute('data-mp4') ?? '' })
    video.setAttribute('aria-hidden', 'true')
    video.tabIndex = -1
    current.video = video
    // Over the poster only when there is a picture.
    video.addEventListener('playing', () => place(link, video), { once: true })
    video.play().catch(() => {})
  }
  const linkAt = (/** @type {Event} */ event) =>
    event.target instanceof Element ? event.target.closest('a[data-mp4]') : null
  /** A resting pointer is reported again when a preview below it ends. @type {Element | null} */
  let pointed = null
  const point = (/** @type {Element | null} */ link) => {
    if (link !== pointed) show(link)
    pointed = link
  }
  grid.addEventListener('pointerover', (event) => {
    if (event.pointerType !== 'touch') point(linkAt(event))
  })
  grid.addEventListener('pointerleave', () => point(null))
  grid.addEventListener('focusin', (event) => {
    const link = linkAt(event)
    if (link?.matches(':focus-visible')) show(link)
  })
  grid.addEventListener('focusout', () => show(null))
  still.addEventListener('change', stop)
}
