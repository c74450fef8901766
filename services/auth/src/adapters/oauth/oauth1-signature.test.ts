import { describe, expect, test } from 'vitest'
import { oauth1Authorization, oauth1Signature } from './oauth1-signature.ts'

const PHOTOS = { oauth_consumer_key: 'dpf43f3p2l4k3l03', oauth_signature_method: 'HMAC-SHA1' }
const TWEET = {
  oauth_consumer_key: 'xvz1evFS4wEEPTGEFPHBog',
  oauth_nonce: 'kYjzVBB8Y0ZFabxSWbWovY3uYSQ2pTgmZeNu2VS4cg',
  oauth_signature_method: 'HMAC-SHA1',
  oauth_timestamp: '1318622958',
  oauth_token: '370773112-GmHxMAgYyLbNEtIKZeRNFsMKPR9EyMZeS9weJAEb',
  oauth_version: '1.0',
}

describe('a request is signed as the worked examples are', () => {
  test.each([
    {
      of: 'RFC 5849 1.2, temporary credentials',
      method: 'POST',
      url: 'https://photos.example.net/initiate',
      parameters: {
        ...PHOTOS,
        oauth_timestamp: '137131200',
        oauth_nonce: 'wIjqoS',
        oauth_callback: 'http://printer.example.com/ready',
      },
      secrets: { consumer: 'kd94hf93k423kf44', token: '' },
      signature: '74KNZJeDHnMBp0EMJ9ZHt/XKycU=',
    },
    {
      of: 'RFC 5849 1.2, token credentials',
      method: 'POST',
      url: 'https://photos.example.net/token',
      parameters: {
        ...PHOTOS,
        oauth_token: 'hh5s93j4hdidpola',
        oauth_timestamp: '137131201',
        oauth_nonce: 'walatlh',
        oauth_verifier: 'hfdp7dh39dks9884',
      },
      secrets: { consumer: 'kd94hf93k423kf44', token: 'hdhd0244k9j7ao03' },
      signature: 'gKgrFCywp7rO0OXSjdot/IHF7IU=',
    },
    {
      of: 'RFC 5849 1.2, a resource with a query',
      method: 'GET',
      url: 'http://photos.example.net/photos?file=vacation.jpg&size=original',
      parameters: {
        ...PHOTOS,
        oauth_token: 'nnch734d00sl2jdk',
        oauth_timestamp: '137131202',
        oauth_nonce: 'chapoH',
      },
      secrets: { consumer: 'kd94hf93k423kf44', token: 'pfkkdhi9sl3r4s00' },
      signature: 'MdpQcU8iPSUjWoN/UDMsK2sui9I=',
    },
    {
      of: "Twitter's documentation, with every kind of character",
      method: 'POST',
      // The body of the example is a form, whose fields are signed as if they were in the query.
      url: 'https://api.twitter.com/1.1/statuses/update.json?include_entities=true&status=Hello%20Ladies%20%2b%20Gentlemen%2c%20a%20signed%20OAuth%20request%21',
      parameters: TWEET,
      secrets: {
        consumer: 'kAcSOqF21Fu85e7zjz7ZN2U4ZRhfV3WpwPAoE3Z7kBw',
        token: 'LswwdoUaIvS8ltyTt5jkRh4J50vUPVVHtR2YPi5kE',
      },
      signature: 'hCtSmYh+iHYCEqBWrE7C7hYmtUk=',
    },
  ] as const)('$of', ({ method, url, parameters, secrets, signature }) => {
    expect(oauth1Signature({ method, url, parameters }, secrets)).toBe(signature)
  })
})

test('parameters of one name are signed in the order of their values (RFC 5849 3.4.1.3.2)', () => {
  const signed = (query: string) =>
    oauth1Signature(
      { method: 'GET', url: `http://a.example/?${query}`, parameters: PHOTOS },
      { consumer: 'c', token: '' },
    )
  expect(signed('a=2&a=10&b=%C3%A4')).toBe(signed('b=%C3%A4&a=10&a=2'))
  expect(signed('a=2')).not.toBe(signed('a=3'))
})

test('Authorization is quoted and encoded, with the signature', () => {
  const request = {
    method: 'GET',
    url: 'https://a.example/',
    parameters: { oauth_callback: "https://b/?a='1" },
  } as const
  expect(oauth1Authorization(request, { consumer: 'c', token: '' })).toMatch(
    /^OAuth oauth_callback="https%3A%2F%2Fb%2F%3Fa%3D%271", oauth_signature="[\w%]+%3D"$/,
  )
})
