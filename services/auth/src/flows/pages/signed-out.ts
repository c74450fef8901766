import { html } from '@services/common/html'
import type { Sent } from '../../http/hosted/answer-pages.ts'
import type { Visit } from '../../http/hosted/visit.ts'
import { applicationName } from '../../http/pages/send-to.ts'
import { fill } from '../../words/language.ts'
import { frameWords } from '../../words/pages/frame.ts'
import { signInWords } from '../../words/pages/sign-in.ts'

interface Next {
  /** Address of an application; undefined: the sign-in. */
  location?: string | undefined
  /** False where the user has not agreed to the address: the page names it and waits for a press. */
  isAgreed?: boolean
  /** Addresses of frames that notify applications. */
  frames: readonly string[]
  news?: 'signed-out' | 'deleted'
}

/** Time for frames to load. Slower applications miss it, and a user waits no longer. */
const FRAMES_SECONDS = 3

/** Leads on from a session of this browser that has ended, by way of a page if that has frames or names an address. */
export function leaveSignedOut(visit: Visit, { location, isAgreed = true, frames, news = 'signed-out' }: Next): Sent {
  const goesOn = isAgreed || location === undefined
  if (frames.length === 0 && goesOn) {
    return location === undefined ? visit.goTo('/ui/sign-in', { carry: { news } }) : visit.leave(location)
  }
  const words = visit.words(signInWords)
  const next = location ?? visit.link('/ui/sign-in')
  const { goOn } = visit.words(frameWords)
  const label =
    location === undefined ? words.title : fill(goOn, { name: applicationName(visit.deps.config, location) })
  return visit.show({
    ...{ title: words.signOut, hidesAddress: true, frames },
    head: goesOn ? html`<meta http-equiv="refresh" content="${FRAMES_SECONDS};url=${next}">\n` : html``,
    body: html`<p>${news === 'deleted' ? words.deleted : words.signedOut}</p>\n<a href="${next}" class="button">${label}</a>\n`,
  })
}
