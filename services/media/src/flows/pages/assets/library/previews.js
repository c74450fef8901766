// Previews: the clip under the pointer or the focus plays without sound, one at a time, unless motion is unwanted.

/** Time before a preview begins: a pointer on its way starts none. */
const AFTER_MS = 150

const still = matchMedia('(prefers-reduced-motion: reduce)')

/** @param {HTMLElement} grid */
export function startPreviews(grid) {
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
    video.addEventListener('playing', () => link.querySelector('.length')?.before(video), { once: true })
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
  grid.addEventListener('focusin', (event) => show(linkAt(event)))
  grid.addEventListener('focusout', () => show(null))
  still.addEventListener('change', stop)
}
