import { html } from '@services/common/html'
import type { Sent } from '../../http/hosted/answer-pages.ts'
import type { Visit } from '../../http/hosted/visit.ts'
import { applicationName } from '../../http/pages/send-to.ts'
import { fill } from '../../words/language.ts'
import { frameWords } from '../../words/pages/frame.ts'
import { signInWords } from '../../words/pages/sign-in.ts'

interface Next {
  /** Address of an application; undefined: the sign-in. */
  location: string | undefined
  /** False where the user has not agreed to the address: the page names it and waits for a press. */
  isAgreed?: boolean
}

/** Leads on from a session of this browser that has ended. */
export function leaveSignedOut(visit: Visit, { location, isAgreed = true }: Next): Sent {
  if (location === undefined) return visit.goTo('/ui/sign-in', { carry: { news: 'signed-out' } })
  if (isAgreed) return visit.leave(location)
  const { signOut, signedOut } = visit.words(signInWords)
  const name = applicationName(visit.deps.config, location)
  return visit.show({
    ...{ title: signOut, hidesAddress: true },
    body: [
      html`<p>${signedOut}</p>\n`,
      html`<a href="${location}" class="button">${fill(visit.words(frameWords).goOn, { name })}</a>\n`,
    ],
  })
}
