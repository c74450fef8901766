/** Longest value that an application may give; a redirect target has its own bound. */
const MAX_LENGTH = 2048

const NAMES = [
  ...(['redirect_to', 'code_challenge', 'code_challenge_method', 'next', 'prompt'] as const),
  ...(['authorization_id', 'user_code'] as const),
] as const

/**
 * Target of a visit: an application, by fragment or PKCE code, or with `next` another page of ours. `prompt` is `login`
 * where a sign-in of now is asked for. A request of a client of the OAuth server, or of a device, is on its way to the
 * page that answers it. A flow travels in addresses and forms. The rules of redirects judge it at its
 * end.
 */
export type Flow = Partial<Record<(typeof NAMES)[number], string>>

export function readFlow(given: Readonly<Record<string, string>>): Flow {
  const kept = NAMES.map((name) => [name, given[name]] as const).filter(
    ([name, value]) => value !== undefined && value.length <= MAX_LENGTH && (name !== 'next' || isOwnPage(value)),
  )
  return Object.fromEntries(kept)
}

/** Pages that a sign-in may lead back to. No dots and no second slash: a browser stays on this host. */
const isOwnPage = (path: string) => /^\/(ui|console)(\/[\w-]+)*$/.test(path)

/** Part of a flow that endpoints take. */
export const toApplication = ({ redirect_to, code_challenge, code_challenge_method }: Flow): Flow => ({
  ...(redirect_to !== undefined && { redirect_to }),
  ...(code_challenge !== undefined && { code_challenge }),
  ...(code_challenge_method !== undefined && { code_challenge_method }),
})
