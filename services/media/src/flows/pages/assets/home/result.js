// The finished clip: preview, addresses and what copies them.

import { text } from '../owner/page-data.js'
import { $, element } from './elements.js'
import { say } from './progress.js'

export function showResult(result) {
  const { files, embed, meta } = result
  $('facts').replaceChildren(
    ...[`${meta.width} × ${meta.height}`, meta.duration.replace(/s$/, ' s')].map((fact) =>
      element('span', { textContent: fact }),
    ),
  )
  $('links').replaceChildren(...linksTo(result))
  $('embed').value = embed
  const video = $('preview')
  video.width = Number(meta.width)
  video.height = Number(meta.height)
  video.poster = files.jpg
  video.autoplay = !matchMedia('(prefers-reduced-motion: reduce)').matches
  video.replaceChildren(
    ...['webm', 'mp4'].map((kind) => element('source', { src: files[kind], type: `video/${kind}` })),
  )
  video.load()
  $('add').hidden = true
  $('done').hidden = false
  $('done-title').focus()
}

/** Items of a list: each address with its name and a button that copies it. */
export function linksTo({ page, files }) {
  const links = [
    [text('page'), page],
    ...['gif', 'mp4', 'webm', 'jpg'].map((kind) => [kind.toUpperCase(), files[kind]]),
  ]
  return links.map(([name, url]) =>
    element(
      'li',
      {},
      element('span', { textContent: name }),
      element('a', { href: url, textContent: url.replace(/^https?:\/\//, ''), ariaLabel: `${name}: ${url}` }),
      copyButton(text('copy'), url, text('copyAddress', { name })),
    ),
  )
}

export function copyButton(textContent, copied, ariaLabel = textContent) {
  const button = element('button', { type: 'button', className: 'quiet', textContent, ariaLabel })
  button.dataset.text = copied
  return button
}

addEventListener('click', async ({ target }) => {
  const { copy, text: copied } = target.dataset ?? {}
  if (!copy && !copied) return
  const before = target.textContent
  try {
    await navigator.clipboard.writeText(copied ?? $(copy).value)
    target.textContent = text('copied')
    say(text('copied'))
  } catch {
    // Not allowed, or not https: select the text instead.
    if (copy) $(copy).select()
    say(text('copyByHand'))
    return
  }
  setTimeout(() => {
    target.textContent = before
  }, 2_000)
})
