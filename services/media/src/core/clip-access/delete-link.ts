/**
 * The address that asks a person before it deletes a clip, for programs that keep one address per clip. The token is in
 * the fragment: browsers never send it, so it is in no log and no Referer. A GET of the address deletes nothing.
 */
export const deleteLink = ({ baseUrl }: { baseUrl: string }, { id, token }: { id: string; token: string }): string =>
  `${baseUrl}/gif/${id}/delete#${token}`
