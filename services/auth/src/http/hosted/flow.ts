/** Longest value that an application may give; a redirect target has its own bound. */
const MAX_LENGTH = 2048

const NAMES = ['redirect_to', 'code_challenge', 'code_challenge_method', 'next'] as const

/**
 * Where a visit leads: to an application, by fragment or PKCE code, or with `next` to another page of ours. It travels
 * in addresses and forms, and is judged at its end by the rules of redirects.
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
