import { type Html, html } from '../../html.ts'
import { strictDocument } from '../../pages/document.ts'
import { type Message, URL_IN_TEXT } from './inbox-messages.ts'

export type MessageView = 'html' | 'text' | 'source'

type PageInput = {
  messages: Message[]
  smtpAddress: string
  shown?: { message: Message; view: MessageView }
  now: Date
}

/** Renders list and chosen message, at phone width only one. Without JavaScript, times are UTC and Clear is inert. */
export function renderInboxPage({ messages, smtpAddress, shown, now }: PageInput): string {
  const title = shown ? shownSubject(shown.message) : `Inbox (${messages.length})`
  const rows = messages.map((message) => renderRow(message, message.id === shown?.message.id, now))
  return strictDocument({
    ...{ language: 'en', title, styles: ['/inbox.css'], scripts: ['/inbox.js'] },
    head: html`<noscript><meta http-equiv="refresh" content="5"></noscript>\n`,
    body: html`<header>
<h1><a href="/">Inbox</a></h1>
<span class="address">${smtpAddress}</span>
<button type="button" id="clear">Clear</button>
</header>
<nav class="messages" aria-label="Messages"><ol id="list" class="list">${rows.length > 0 ? rows : renderEmptyList(smtpAddress)}</ol></nav>
${shown ? renderMessage(shown.message, shown.view) : html`<main class="none"><p class="empty">${rows.length > 0 ? 'Choose a message.' : ''}</p></main>`}`,
  })
}

/** Lists the views of a message, the best first. */
export function viewsOf(message: Message): MessageView[] {
  const views: MessageView[] = []
  if (message.html) views.push('html')
  if (message.text || !message.html) views.push('text')
  return [...views, 'source']
}

function renderEmptyList(smtpAddress: string): Html {
  return html`<li class="empty">No mail yet.<br>Mail sent to ${smtpAddress} appears here.</li>`
}

function renderRow(message: Message, isShown: boolean, now: Date): Html {
  const start = message.text.slice(0, 140)
  return html`<li><a href="/messages/${message.id}"${isShown ? html` aria-current="true"` : ''}>
<span class="to">${message.to.join(', ')}</span>
<time datetime="${message.receivedAt}" title="${inUtc(message.receivedAt)}">${describeAge(new Date(message.receivedAt), now)}</time>
<span class="subject">${shownSubject(message)}</span>
<span class="start">${start}</span>
</a></li>`
}

function renderMessage(message: Message, view: MessageView): Html {
  const tabs = viewsOf(message).map(
    (one) =>
      html`<a href="/messages/${message.id}?view=${one}"${one === view ? html` aria-current="page"` : ''}>${VIEW_NAMES[one]}</a>`,
  )
  return html`<main>
<a class="back" href="/">← All messages</a>
<h2>${shownSubject(message)}</h2>
<dl>
<dt>From</dt><dd>${message.from}</dd>
<dt>To</dt><dd>${message.to.join(', ')}</dd>
<dt>Received</dt><dd><time datetime="${message.receivedAt}" title="${inUtc(message.receivedAt)}">${inUtc(message.receivedAt)}</time></dd>
${message.attachments.length > 0 ? html`<dt>Attached</dt><dd>${describeAttachments(message)}</dd>` : ''}
</dl>
<nav class="tabs" aria-label="Parts of the message">${tabs}</nav>
${renderView(message, view)}
</main>`
}

const VIEW_NAMES: Record<MessageView, string> = { html: 'HTML', text: 'Text', source: 'Source' }

function renderView(message: Message, view: MessageView): Html {
  if (view === 'html') {
    // Without allow-scripts and allow-same-origin a mail can neither run scripts nor read this page. Links open in a
    // new tab.
    return html`<iframe sandbox="allow-popups allow-popups-to-escape-sandbox" title="The message" src="/messages/${message.id}/html"></iframe>`
  }
  return html`<pre>${view === 'text' ? linkAddresses(message.text) : message.source}</pre>`
}

/** Links only http and https URLs: `javascript:` stays text. */
function linkAddresses(text: string): Html[] {
  const parts: Html[] = []
  let end = 0
  for (const { 0: address, index } of text.matchAll(URL_IN_TEXT)) {
    parts.push(html`${text.slice(end, index)}<a href="${address}" target="_blank" rel="noreferrer">${address}</a>`)
    end = index + address.length
  }
  return [...parts, html`${text.slice(end)}`]
}

const shownSubject = (message: Message) => message.subject || '(no subject)'

const describeAttachments = ({ attachments }: Message) =>
  attachments.map(({ name, type, bytes }) => `${name} (${type}, ${bytes} bytes)`).join(', ')

const inUtc = (iso: string) => `${iso.slice(0, 19).replace('T', ' ')} UTC`

function describeAge(then: Date, now: Date): string {
  const minutes = Math.floor((now.getTime() - then.getTime()) / 60_000)
  if (minutes < 1) return 'now'
  if (minutes < 60) return `${minutes} min`
  const hours = Math.floor(minutes / 60)
  return hours < 24 ? `${hours} h` : `${Math.floor(hours / 24)} d`
}
