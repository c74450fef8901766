// A row of the list: name, title, state, bar and the buttons that its state allows.

import { text } from '../owner/page-data.js'
import { element, form } from './elements.js'
import { showFraction, sizeOf } from './progress.js'
import { isRepeated } from './queue.js'
import { copyButton, linksTo } from './result.js'

/** Buttons by state; an address cannot be sent in parts, so it cannot pause. */
const BUTTONS = {
  draft: ['remove'],
  waiting: ['pause', 'cancel'],
  sending: ['pause', 'cancel'],
  paused: ['goOn', 'cancel'],
  making: [],
  ready: [],
  refused: ['retry', 'remove'],
  cancelled: ['retry', 'remove'],
}
const NEVER_OF_ADDRESSES = ['pause']

/** States before a request: a refused title can be changed. */
const EDITABLE = ['draft', 'refused']

/** Makes the element of a row. `act(name)` is called for a button; `update` shows the state of the row. */
export function rowView(row, act) {
  const label = row.file?.name ?? row.source
  const name = element('span', { className: 'name', tabIndex: -1, textContent: label })
  const size = element('span', { className: 'hint', textContent: row.file ? sizeOf(row.file.size) : '' })
  const title = element('input', {
    ...{ value: row.title ?? '', placeholder: text('title'), autocomplete: 'off' },
    ariaLabel: text('titleOf', { name: label }),
    oninput: () => {
      row.title = title.value.trim()
    },
  })
  const bar = element('progress', { max: 100, ariaLabel: label })
  const state = element('p', { className: 'state' })
  const buttons = ['goOn', 'pause', 'cancel', 'retry', 'remove'].map((action) => {
    const ariaLabel = text('buttonOf', { action: text(action), name: label })
    const button = element('button', { type: 'button', className: 'quiet', textContent: text(action), ariaLabel })
    button.dataset.action = action
    button.addEventListener('click', () => act(action))
    return button
  })
  const acts = element('div', { className: 'acts' }, ...buttons)
  const foot = element('div', { className: 'foot' }, title, acts)
  const item = element('li', {}, element('div', { className: 'head' }, name, size), state, bar, foot)

  function update() {
    const hadFocus = item.contains(document.activeElement)
    item.dataset.state = row.state
    item.className = row.state === 'refused' ? 'bad' : ''
    title.hidden = !EDITABLE.includes(row.state) || isRepeated(row)
    state.hidden = row.state === 'draft'
    bar.hidden = row.state !== 'sending' && row.state !== 'making'
    showFraction(bar, row.fraction)
    const sentence = stateOf(row)
    if (state.textContent !== sentence) state.textContent = sentence
    for (const button of buttons) {
      const { action } = button.dataset
      const isPossible = row.file || !NEVER_OF_ADDRESSES.includes(action)
      button.hidden = !BUTTONS[row.state].includes(action) || !isPossible
    }
    if (row.problem?.ofCaller && form.dataset.signedIn === 'true') state.append(' ', signIn())
    if (row.state === 'ready' && !item.querySelector('details')) showReady()
    // A button that was just used may be gone: the focus must not fall back to the top of the page.
    if (hadFocus && !item.contains(visibly(document.activeElement)))
      (buttons.find(({ hidden }) => !hidden) ?? item.querySelector('a, .name')).focus()
  }

  function showReady() {
    name.replaceChildren(element('a', { href: row.result.page, textContent: row.title || label }))
    const embed = copyButton(text('copyEmbed'), row.result.embed)
    const links = element('ul', { className: 'links' }, ...linksTo(row.result))
    item.append(element('details', {}, element('summary', { textContent: text('links') }), links, embed))
  }
  update()
  return { item, update }
}

const visibly = (active) => (active?.checkVisibility?.() ? active : null)

const signIn = () => element('a', { href: 'session?next=%2F', target: '_blank', textContent: text('signIn') })

function stateOf({ state, step, detail, problem, until }) {
  if (state === 'refused') return problem.message
  if (state === 'waiting' && until !== undefined) {
    const time = new Date(until).toLocaleTimeString(document.documentElement.lang)
    return text('waitUntil', { time })
  }
  if (state === 'sending' || state === 'making') return [step || text('uploading'), detail].filter(Boolean).join(', ')
  return text({ ready: 'readyShort' }[state] ?? state)
}
