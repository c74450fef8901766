// Fields that describe clips; the same for all clips of a list.
import { data } from '../owner/page-data.js'
import { caller } from './caller.js'
import { $, element } from './elements.js'
import { ACCESS, EDITS, FLAGS, TEXTS } from './problems.js'
import { answerOf } from './retry.js'

/** Reads them; a list has none of those that belong to a single file. */
export function readFields({ isList = false } = {}) {
  const names = isList ? [...TEXTS.filter((name) => name !== 'title'), ...ACCESS] : [...TEXTS, ...EDITS, ...ACCESS]
  const fields = Object.fromEntries(names.map((name) => [name, $(name).value.trim()]).filter(([, value]) => value))
  const flags = FLAGS.filter((name) => $(name).matches(':checked:enabled') && !(isList && name === 'mute'))
  return { ...fields, ...Object.fromEntries(flags.map((name) => [name, 'true'])) }
}

/** Disables the box without a lifetime: no deletion could be put off. */
export function allowSliding() {
  $('sliding').disabled = !$('expires_in').value
}
$('expires_in').addEventListener('change', allowSliding)
allowSliding()

/** Offers the albums of the caller alone, also to an administrator who is signed in, where the token may read them. */
async function offerAlbums() {
  const { headers, isKnown } = caller()
  if (!isKnown || !$('more').open) return
  const signal = AbortSignal.timeout(10_000)
  const path = data.token ? `albums?limit=100&token=${data.token}` : 'albums?limit=100'
  const answer = await answerOf(fetch(path, { headers, signal }), signal).catch(() => undefined)
  if (answer?.status !== 200) return
  const { items } = JSON.parse(answer.body).success
  const [none] = $('album').options
  const chosen = $('album').value
  $('album').replaceChildren(
    none,
    ...items.map(({ id, title }) => element('option', { value: id, textContent: title })),
  )
  $('album').value = chosen
  $('albums').hidden = items.length === 0
}
$('more').addEventListener('toggle', offerAlbums)
