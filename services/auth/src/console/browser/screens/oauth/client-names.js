// Words for clients of the OAuth server, as lists, pages and forms show them.

/** @typedef {Record<string, any>} Client */

/** @type {Record<string, string>} */
export const TYPES = { public: 'public', confidential: 'confidential' }

/** @type {Record<string, string>} */
export const GRANTS = {
  authorization_code: 'sign-in in a browser',
  refresh_token: 'refresh tokens',
  'urn:ietf:params:oauth:grant-type:device_code': 'sign-in by a device code',
  client_credentials: 'tokens of its own',
}

/** @param {string[]} grants */
export const wordsOf = (grants) => grants.map((grant) => GRANTS[grant] ?? grant).join(', ')

/** @type {Record<string, string>} */
export const METHODS = {
  none: 'none',
  client_secret_basic: 'secret in the header',
  client_secret_post: 'secret in the body',
  private_key_jwt: 'signature by its key',
}

/** @type {Record<string, string>} */
export const REGISTRATIONS = {
  manual: 'an administrator',
  dynamic: 'itself',
  metadata_document: 'its metadata document',
}

/** @param {Client} client @returns {string} */
export const nameOf = ({ client_name: name, client_id: id }) => name ?? id
