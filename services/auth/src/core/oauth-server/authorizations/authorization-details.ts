import { type Static, Type } from 'typebox'
import type { OAuthAuthorization, OAuthClient } from '../../../db/tables.ts'
import type { User } from '../../users/users.store.ts'
import { hostOf, publicIdOf } from '../find-client.ts'
import { STANDARD_DESCRIPTIONS } from '../oauth-scopes.ts'
import { listOwnScopes, type ScopeDeps } from '../own-scopes.ts'

const Text = Type.Optional(Type.String())

export const ShownClient = Type.Object(
  {
    ...{ id: Type.String(), name: Text, uri: Text, logo_uri: Text },
    host: Type.Optional(
      Type.String({ description: 'Host that vouches for the other members; show it beside the name.' }),
    ),
  },
  { title: 'OAuthApplication', description: 'An application, as its users see it.' },
)

export const AuthorizationDetails = Type.Object(
  {
    authorization_id: Type.String(),
    redirect_uri: Type.String({ description: 'Address that the answer goes to.' }),
    client: ShownClient,
    user: Type.Object({ id: Type.String(), email: Text }),
    scope: Type.String({ description: 'Scopes, separated by spaces.' }),
    request: Type.Object({
      prompt: Text,
      max_age: Type.Optional(Type.Integer()),
      login_hint: Text,
      acr_values: Text,
      resource: Type.Array(Type.String()),
      scopes: Type.Array(
        Type.Object({
          name: Type.String(),
          description: Type.String(),
          descriptions: Type.Optional(
            Type.Record(Type.String(), Type.String(), { description: 'Descriptions by language.' }),
          ),
        }),
      ),
    }),
  },
  { title: 'OAuthAuthorizationDetails' },
)

/** Client as users see it; empty members are left out. */
type Named = Pick<OAuthClient, 'id' | 'metadata_uri' | 'client_name' | 'client_uri' | 'logo_uri'>

export const shownClient = (client: Named): Static<typeof ShownClient> => ({
  id: publicIdOf(client),
  ...given({ name: client.client_name, uri: client.client_uri, logo_uri: client.logo_uri }),
  ...(client.metadata_uri !== null && { host: hostOf(client.metadata_uri) }),
})

/** Describes a request for the page that asks the user. */
export async function authorizationDetails(
  deps: ScopeDeps,
  { id, email }: Pick<User, 'id' | 'email'>,
  { request, client }: { request: OAuthAuthorization; client: OAuthClient },
): Promise<Static<typeof AuthorizationDetails>> {
  const { prompt, max_age, login_hint, acr_values, resources, scopes } = request
  const own = await listOwnScopes(deps)
  return {
    authorization_id: request.id,
    redirect_uri: request.redirect_uri,
    client: shownClient(client),
    user: { id, ...given({ email }) },
    scope: scopes.join(' '),
    request: {
      ...given({ prompt, max_age, login_hint, acr_values }),
      resource: resources,
      scopes: scopes.map((name) => {
        const { description, descriptions } = own.find((scope) => scope.name === name) ?? {}
        return {
          name,
          description: description ?? STANDARD_DESCRIPTIONS[name] ?? name,
          ...(descriptions && { descriptions }),
        }
      }),
    },
  }
}

type Given<Members> = { [Name in keyof Members]?: Exclude<Members[Name], null> }

const given = <Members extends object>(members: Members) =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== null)) as Given<Members>
