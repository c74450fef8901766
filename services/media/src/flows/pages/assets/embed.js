// Defines <media-clip>, which shows a clip on any page, and pauses the clip of our own player (/embed/{id}) off screen.
// It does nothing that a strict policy of the page forbids: no style attribute, no markup from text, no eval. A clip
// that cannot be shown leaves the light DOM visible: the link inside.
{
  /** Reports whether at least `threshold` of an element is visible; `margin` extends the window. */
  const watch = (element, { margin = '0px', threshold = 0 }, report) => {
    const observer = new IntersectionObserver((entries) => report(entries.at(-1).isIntersecting), {
      rootMargin: margin,
      threshold,
    })
    observer.observe(element)
    return () => observer.disconnect()
  }
  const VISIBLE = { threshold: 0.25 }

  // Only our player: a page that shows elements has videos of its own.
  const home = document.currentScript?.src.replace(/embed\.js.*$/, 'gif/')
  const isPlayer = home && document.querySelector('link[rel=canonical]')?.href.startsWith(home)
  for (const video of isPlayer ? document.querySelectorAll('video') : []) {
    let pausedHere = false
    watch(video, VISIBLE, (isVisible) => {
      if (isVisible && pausedHere) {
        pausedHere = false
        video.play().catch(() => {})
      }
      if (!isVisible && !video.paused) {
        pausedHere = true
        video.pause()
      }
    })
  }

  const CSS = `
:host { display: block; max-width: 100% }
:host([hidden]), [hidden] { display: none !important }
[part=frame] { position: relative; overflow: hidden; width: var(--width); max-width: 100%; aspect-ratio: var(--ratio); background: var(--color, #0a0b0d); font: 1rem/1.4 system-ui, sans-serif }
img, video { position: absolute; inset: 0; width: 100%; height: 100%; object-fit: contain }
button { position: absolute; inset: 0; display: grid; place-items: center; width: 100%; height: 100%; margin: 0; padding: 1rem; border: 0; background: none; color: #fff; font: inherit; cursor: pointer }
button:focus-visible { outline: 3px solid #6ea0ff; outline-offset: -3px }
[part=gate] { align-content: center; gap: .5rem }
[part=open] { padding: .5rem 1.25rem; border-radius: 2rem; background: #fff; color: #101216; font-weight: 600 }
[part~=play]::before { content: ""; grid-area: 1 / 1; width: 4rem; height: 4rem; border-radius: 50%; background: #000a }
[part~=play]::after { content: ""; grid-area: 1 / 1; width: 1.25rem; height: 1.5rem; margin-left: .25rem; background: #fff; clip-path: polygon(0 0, 100% 50%, 0 100%) }
[part~=playing]::after { margin: 0; clip-path: polygon(0 0, 35% 0, 35% 100%, 65% 100%, 65% 0, 100% 0, 100% 100%, 0 100%) }
[part~=playing]:not(:focus-visible) { opacity: 0 }
`

  /** Answers to come, by address: a clip that a page shows twice is requested once. */
  const requests = new Map()

  /** Resolves to the status and the clip; status 0 means no answer. */
  const request = (address) => {
    if (!requests.has(address)) {
      const answer = fetch(address, { credentials: 'omit' })
        .then(async (response) => ({ status: response.status, clip: response.ok ? await response.json() : undefined }))
        .catch(() => ({ status: 0 }))
      requests.set(address, answer)
      answer.then(({ clip }) => clip?.state === 'ready' || requests.delete(address))
    }
    return requests.get(address)
  }

  /** Checks again while the clip is processing, for five minutes, like the page of a clip. */
  const RETRY_MS = 3_000
  const RETRIES = 100
  const COMES_BACK = [200, 429, 503]

  const make = (name, members) => Object.assign(document.createElement(name), members)

  class MediaClip extends HTMLElement {
    static observedAttributes = ['src', 'autoplay', 'muted', 'loop', 'controls', 'poster-only', 'width', 'height']
    #frame = make('div', { part: 'frame', hidden: true })
    #inside = make('slot')
    /** Ends with the connection to the document, or with its `src`. */
    #shown

    constructor() {
      super()
      const root = this.attachShadow({ mode: 'open' })
      root.adoptedStyleSheets = [sheet]
      root.append(this.#frame, this.#inside)
    }

    connectedCallback() {
      this.#shown = new AbortController()
      const { signal } = this.#shown
      const [, base, door, id, link = ''] = /^(https?:\/\/.+)\/(gif|embed)\/(\w+)\/?(\?.*)?$/.exec(this.#page) ?? []
      if (!id) return this.#fail({ status: 0 })
      const stop = watch(this, { margin: '50%' }, (isNear) => {
        if (!isNear) return
        stop()
        this.#load(`${base}/embed/${id}/data${link && `${link}&of=${door}`}`, signal)
      })
      signal.addEventListener('abort', stop)
    }

    disconnectedCallback() {
      this.#shown?.abort()
      this.#shown = undefined
      this.#showInside()
    }

    attributeChangedCallback(_name, before, now) {
      if (!this.#shown || before === now) return
      this.disconnectedCallback()
      this.connectedCallback()
    }

    /** Without the parameters that others append, but with the link to a private clip, its own or of its album. */
    get #page() {
      const { href } = make('a', { href: this.getAttribute('src') ?? '' })
      const [, a = ''] = /[?&](a=\w+)/.exec(href) ?? []
      const [, e] = /[?&](e=\d+)/.exec(href) ?? []
      const [, s] = /[?&](s=[\w-]+)/.exec(href) ?? []
      return href.replace(/[?#].*/, '') + (e && s ? `?${a && `${a}&`}${e}&${s}` : '')
    }

    #showInside() {
      this.#frame.replaceChildren()
      this.#frame.hidden = true
      this.#inside.hidden = false
    }

    #fail(detail) {
      this.#showInside()
      this.#tell('error', detail)
    }

    #tell(name, detail) {
      this.dispatchEvent(new CustomEvent(name, { detail }))
    }

    async #load(address, signal) {
      for (let retries = 0; !signal.aborted; retries++) {
        const { status, clip } = await request(address)
        if (signal.aborted) return
        if (clip?.poster && Array.isArray(clip.sources)) return this.#show(clip, signal)
        if (!COMES_BACK.includes(status) || retries === RETRIES) return this.#fail({ status })
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
      }
    }

    #show(clip, signal) {
      const frame = this.#frame
      const width = Number(this.getAttribute('width')) || clip.width
      const height = Number(this.getAttribute('height')) || (width * clip.height) / clip.width
      frame.style.setProperty('--width', `${width}px`)
      frame.style.setProperty('--ratio', `${width} / ${height}`)
      frame.style.setProperty('--color', clip.nsfw ? '' : (clip.color ?? ''))
      frame.hidden = false
      this.#inside.hidden = true
      if (!clip.nsfw) return this.#showStill(clip, signal)
      const gate = make('button', { part: 'gate', type: 'button' })
      const text = make('slot', { name: 'gate' })
      text.append('Not safe for work', make('span', { part: 'open', textContent: 'Show it' }))
      gate.append(text)
      gate.onclick = () => this.#showStill(clip, signal, true)
      frame.replaceChildren(gate)
      this.#tell('ready')
    }

    #showStill(clip, signal, isOpened) {
      const still = make('img', { part: 'poster', alt: clip.title })
      const isAlone = this.hasAttribute('poster-only')
      still.onerror = () => signal.aborted || this.#fail({ file: 'poster' })
      still.onload = () => {
        if (signal.aborted) return
        if (!isOpened) this.#tell('ready')
        if (!isAlone) this.#showPlayer(clip, signal, still, isOpened)
      }
      still.src = clip.poster
      if (!isAlone) return this.#frame.replaceChildren(still)
      const link = make('a', { part: 'link', href: this.#page })
      link.append(still)
      this.#frame.replaceChildren(link)
    }

    /**
     * The still with a button. Visible, it plays if the page or the user wants it, and the user has not asked for less
     * motion.
     */
    #showPlayer(clip, signal, still, isOpened) {
      const hasControls = this.hasAttribute('controls')
      const isCalm = matchMedia('(prefers-reduced-motion: reduce)').matches
      const button = make('button', { part: 'play', type: 'button', ariaLabel: `Play: ${clip.title}` })
      let isWanted = isOpened || (this.hasAttribute('autoplay') && !isCalm)
      let isVisible = false
      let video

      const makeVideo = () => {
        video = make('video', { part: 'video', playsInline: true, controls: hasControls, ariaLabel: clip.title })
        video.muted = this.hasAttribute('muted')
        video.loop = this.hasAttribute('loop')
        const sources = clip.sources.map(({ src, type }) => make('source', { src: String(src), type: String(type) }))
        sources.at(-1).onerror = () => signal.aborted || this.#fail({ file: 'video' })
        video.append(...sources)
        video.onplaying = () => {
          // It would be seen through a transparent clip.
          still.hidden = true
        }
        video.onplay = () => {
          isWanted = true
          button.part = 'play playing'
          button.ariaLabel = `Pause: ${clip.title}`
          button.hidden = hasControls
          this.#tell('play')
        }
        video.onpause = () => {
          button.part = 'play'
          button.ariaLabel = `Play: ${clip.title}`
          // The user did it, in the browser's own controls.
          if (isVisible) isWanted = false
        }
        still.after(video)
      }
      const update = () => {
        if (isWanted && isVisible) {
          if (!video) makeVideo()
          video.play().catch(() => {})
        } else video?.pause()
      }
      button.onclick = () => {
        isWanted = !video || video.paused
        update()
      }
      still.after(button)
      const stop = watch(this.#frame, VISIBLE, (isSeen) => {
        isVisible = isSeen
        update()
      })
      signal.addEventListener('abort', () => {
        stop()
        video?.pause()
      })
    }
  }

  // Browsers without style sheets of scripts keep the link inside.
  const canShow = 'replaceSync' in CSSStyleSheet.prototype
  const sheet = canShow ? new CSSStyleSheet() : undefined
  sheet?.replaceSync(CSS)
  if (canShow && !customElements.get('media-clip')) customElements.define('media-clip', MediaClip)
}
