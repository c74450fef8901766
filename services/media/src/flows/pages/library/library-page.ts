import { type Html, html } from '@services/common/html'
import { notice } from '@services/common/pages/notices'
import { SORTS } from '../../../core/lists/search/position.ts'
import type { OwnUsage } from '../../../core/tokens/own-usage.ts'
import { libraryWords } from '../../../words/library.ts'
import { type Filter, type Filters, pathOf, STATES, VISIBILITIES } from './address.ts'
import { card, type Setting } from './card.ts'
import type { ShownClip } from './shown-clips.ts'

export interface Library {
  clips: readonly ShownClip[]
  filters: Filters
  /** Position that the page begins at. */
  cursor: string | undefined
  nextCursor: string | null
  /** Clips of the most used tags. */
  tags: readonly { tag: string; count: number }[]
  /** Newest albums of the token. */
  albums: readonly { id: string; title: string }[]
  usage: OwnUsage
  /** Rights of the token. */
  may: { write: boolean; delete: boolean }
  /** Sentence why the search of the address could not be done. */
  problem?: string | undefined
}

/** The first view, complete without scripts, which make it live. */
export function libraryPage(library: Library, setting: Setting): Html {
  const { clips, filters, cursor, usage, problem } = library
  const words = libraryWords[setting.language]
  if (usage.stored.clips === 0 && clips.length === 0 && !problem) return nothingYet(library, setting)
  return html`${problem && notice('problem', problem)}${numbers(library, setting)}
${search(library, setting)}
<p id="news" role="status"></p>
<form id="chosen" method="get" action="${setting.baseUrl}/library/delete" aria-label="${words.clips}">
<span class="unseen" id="choose">${words.choose}</span>
${cursor !== undefined && html`<p class="way"><a href="${setting.baseUrl}${pathOf(filters)}">${words.toBeginning}</a></p>\n`}${
  clips.length > 0
    ? html`<ol class="grid" id="grid">
${clips.map((clip) => card(clip, setting))}</ol>
`
    : html`<p class="empty">${words.noMatch} <a href="${setting.baseUrl}/library">${words.clearAll}</a></p>\n`
}${next(library, setting)}
${clips.length > 0 && library.may.delete && html`<div class="bar plain" id="bar"><button type="submit" class="danger">${words.deleteChosen}</button></div>\n`}</form>
`
}

/** Cards alone, for scripts. */
export const cardsOf = (clips: readonly ShownClip[], setting: Setting): Html =>
  html`${clips.map((clip) => card(clip, setting))}`

const next = ({ filters, nextCursor }: Library, { language, baseUrl }: Setting) =>
  nextCursor !== null &&
  html`<p class="way"><a id="next" rel="next" href="${baseUrl}${pathOf(filters, nextCursor)}">${libraryWords[language].next}</a></p>`

function nothingYet(library: Library, setting: Setting): Html {
  const words = libraryWords[setting.language]
  return html`<div class="welcome">
<h2>${words.nothingYet}</h2>
<p>${library.may.write ? words.firstSteps : words.noWrite}</p>
<p><a class="button" href="${setting.baseUrl}/">${words.addFirst}</a></p>
<p class="hint">${words.otherWays} <a href="${setting.baseUrl}/docs">API</a></p>
</div>
`
}

/** Bytes of the quota, clips, and what was added today. */
function numbers({ usage }: Library, { language, formats }: Setting): Html {
  const words = libraryWords[language]
  const { stored, today } = usage
  const of = (used: number, limit: number | null) =>
    limit === null ? formats.bytes(used) : `${formats.bytes(used)} ${words.of} ${formats.bytes(limit)}`
  const meter = (used: number, limit: number | null, label: string) =>
    limit !== null &&
    html`<meter min="0" max="${limit}" high="${0.9 * limit}" value="${Math.min(used, limit)}" aria-label="${label}">${formats.percent(used / limit)}</meter>`
  return html`<dl class="numbers">
<div><dt>${words.clips}</dt><dd>${formats.number(stored.clips)}</dd></div>
<div><dt>${words.storage}</dt><dd>${of(stored.bytes, stored.limit_bytes)}${meter(stored.bytes, stored.limit_bytes, words.storage)}</dd></div>
<div><dt>${words.today}</dt><dd>${formats.number(today.clips)} ${today.clips === 1 ? words.clip : words.clips}, ${of(today.bytes, today.limit_bytes)}${meter(today.bytes, today.limit_bytes, words.today)}</dd></div>
</dl>`
}

/** A form in the address; tags are links, so that they work by one click. */
function search(library: Library, setting: Setting): Html {
  const { filters } = library
  const { language, baseUrl } = setting
  const words = libraryWords[language]
  const kept = filters.tag !== undefined && html`<input type="hidden" name="tag" value="${filters.tag}">`
  const isNarrowed = (['album', 'state', 'visibility', 'nsfw', 'from', 'to'] as const).some((name) => filters[name])
  return html`<search>
<form class="search" method="get" action="${baseUrl}/library">
${kept}<label class="unseen" for="q">${words.search}</label>
<input id="q" type="search" name="q" value="${filters.q}" maxlength="200" placeholder="${words.searchHint}" dir="auto">
${choice(
  'sort',
  words.sort,
  SORTS.map((sort) => [sort === 'created' ? '' : sort, words.sorts[sort]]),
  filters,
)}
<button type="submit" class="primary">${words.search}</button>
<details${isNarrowed && html` open`}><summary>${words.filters}</summary><div class="filters">
${choice('state', words.state, [['', words.any], ...STATES.map((state) => [state, words.states[state]] as const)], filters)}
${choice('visibility', words.visibility, [['', words.any], ...VISIBILITIES.map((value) => [value, words[value]] as const)], filters)}
${choice(
  'nsfw',
  words.sensitive,
  [
    ['', words.any],
    ['true', words.yes],
    ['false', words.no],
  ],
  filters,
)}
${inAlbum(library, words)}${day('from', words.from, filters)}
${day('to', words.to, filters)}
</div></details>
</form>
${tagLinks(library, setting)}${Object.keys(filters).some((name) => name !== 'sort' && name !== 'order') && html`<p class="way"><a href="${baseUrl}/library">${words.clearAll}</a></p>\n`}</search>`
}

function tagLinks({ tags, filters }: Library, { language, formats, baseUrl }: Setting): Html | false {
  const words = libraryWords[language]
  const { tag: current, ...others } = filters
  const isCurrent = (tag: string) => tag.toLowerCase() === current?.toLowerCase()
  const isListed = current === undefined || tags.some(({ tag }) => isCurrent(tag))
  const shown = isListed ? tags : [{ tag: current, count: undefined }, ...tags]
  const link = ({ tag, count }: { tag: string; count: number | undefined }) => {
    const state = isCurrent(tag) && html` aria-current="true"`
    const target = pathOf(isCurrent(tag) ? others : { ...others, tag })
    return html`<li><a href="${baseUrl}${target}"${state}><span dir="auto">${tag}</span>${count !== undefined && html` <small>${formats.number(count)}</small>`}</a></li>\n`
  }
  return shown.length > 0 && html`<ul class="tags" aria-label="${words.tags}">\n${shown.map(link)}</ul>\n`
}

const choice = (name: Filter, label: string, options: readonly (readonly [string, string])[], filters: Filters): Html =>
  html`<label>${label} <select name="${name}">${options.map(([value, text]) => html`<option value="${value}"${value === (filters[name] ?? '') && html` selected`}>${text}</option>`)}</select></label>`

/** An album of the address that is none of these stays the choice. */
function inAlbum({ albums, filters }: Library, words: { album: string; any: string }): Html | false {
  const options = albums.map(({ id, title }) => [id, title] as const)
  const isListed = filters.album === undefined || albums.some(({ id }) => id === filters.album)
  const others = isListed || filters.album === undefined ? [] : [[filters.album, filters.album] as const]
  const all = [...options, ...others]
  return all.length > 0 && choice('album', words.album, [['', words.any], ...all], filters)
}

const day = (name: 'from' | 'to', label: string, filters: Filters): Html =>
  html`<label>${label} <input type="date" name="${name}" value="${filters[name]}"></label>`
